/** The page begins here. */
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { App } from './App';
import { watchFaults } from './common/fault';
import { startRouter } from './common/router';
import { startTheme } from './common/theme';

watchFaults();
startTheme();
startRouter();
render(<App />, document.getElementById('app')!);
