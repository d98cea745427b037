/** What the frame loads when a page about incidents or the film is opened for the first time. */
import './incidents.css';
export { Film } from './Film';
export { Incident } from './Incident';
export { Incidents } from './Incidents';
