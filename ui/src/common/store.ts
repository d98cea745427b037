/** What several parts of the page know: the fleet, and the series of each instance. */
import { signal } from '@preact/signals';
import { fetchFleet, fetchMetrics, type Fleet, type Instance } from '../api';
import { Catalogue } from '../server/define';

/** The newest answer about all that is watched; null before the first. */
export const fleet = signal<Fleet | null>(null);
/** Series by instance, as far as they were asked for. */
export const catalogues = signal<Record<string, Catalogue>>({});

const loaded = new Map<string, number>();
const loading = new Map<string, Promise<void>>();

/** Asks for the fleet again. */
export async function loadFleet(): Promise<void> {
  fleet.value = await fetchFleet();
}

/** An instance of the fleet. */
export function instanceOf(id: string): Instance | undefined {
  return fleet.value?.instances?.find((i) => i.id === id);
}

/** Asks for the series of an instance, unless that was done less than so many seconds ago. */
export function loadCatalogue(id: string, maxAge: number): Promise<void> {
  const age = (performance.now() - (loaded.get(id) ?? -Infinity)) / 1000;
  if (age < maxAge) return Promise.resolve();
  const running = loading.get(id);
  if (running) return running;
  const job = fetchMetrics(id)
    .then((metrics) => {
      loaded.set(id, performance.now());
      catalogues.value = { ...catalogues.value, [id]: new Catalogue(metrics) };
    })
    .finally(() => loading.delete(id));
  loading.set(id, job);
  return job;
}
