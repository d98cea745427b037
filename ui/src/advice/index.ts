/** What the frame loads when the page about advice is opened for the first time. */
import './advice.css';
export { Advice } from './Advice';
