/** What the frame loads when a page about statements is opened for the first time. */
import './queries.css';
export { Queries } from './Queries';
export { Query } from './Query';
