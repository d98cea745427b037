import './topology.css';
export { Topology } from './Topology';
