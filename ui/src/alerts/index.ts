/** What the frame loads when the page about alerts is opened for the first time. */
import './alerts.css';
export { Alerts } from './Alerts';
