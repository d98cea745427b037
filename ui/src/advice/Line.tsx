/** One line on a server's page that leads to its advice. */
import { useState } from 'preact/hooks';
import { fetchAdvice, type AdviceAnswer } from '../api';
import { usePolled } from '../common/poll';
import { view } from '../common/router';
import { formatView, rangeOn } from '../common/view';
import { countWords } from './words';

const EVERY_MS = 60_000;

/** "Advice: 3 warnings"; nothing while there is none. */
export function AdviceLine({ id }: { id: string }) {
  const [a, setA] = useState<AdviceAnswer | null>(null);
  usePolled(() => fetchAdvice({ instance: id, limit: 1 }), setA, EVERY_MS, [id]);
  const said = a ? countWords(a.counts) : '';
  if (!said) return null;
  return <p class="advice-line">Advice: <a class="link" href={formatView({ ...view.value, page: 'advice', range: rangeOn(view.value, 'advice'), q: '', sort: '', pins: [], at: null })}>{said}</a></p>;
}
