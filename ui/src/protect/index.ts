/** What the frame loads when a page about protection is opened for the first time. */
import './protect.css';
export { Protect } from './Protect';
export { ProtectServer } from './Server';
