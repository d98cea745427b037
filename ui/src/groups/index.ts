/** What the frame loads when the page about groups is opened for the first time. */
import './groups.css';
export { Groups } from './Groups';
