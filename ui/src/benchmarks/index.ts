/** What the frame loads when a page about benchmarks is opened for the first time. */
import './benchmarks.css';
export { Benchmark } from './Benchmark';
export { Benchmarks } from './Benchmarks';
