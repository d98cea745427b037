/** What the frame loads when a page about sizes is opened for the first time. */
import './sizes.css';
export { Sizes } from './Sizes';
