/** The list of keys, over the page. */
import { useEffect, useRef } from 'preact/hooks';
import { KEYS, helpOpen } from '../common/keys';

/** Shown by "?"; Escape or a click outside closes it. */
export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open && !box.current?.open) box.current?.showModal();
    if (!open) box.current?.close();
  }, [open]);
  return (
    <dialog ref={box} class="help" aria-label="Keys" onClose={() => (helpOpen.value = false)} onClick={(e) => e.target === box.current && (helpOpen.value = false)}>
      <div>
        <h2>Keys</h2>
        <dl>
          {KEYS.map(([k, what]) => <div key={k}><dt>{k.split(', ').map((x) => <kbd key={x}>{x}</kbd>)}</dt><dd>{what}</dd></div>)}
        </dl>
        <h2>Reading a chart</h2>
        <p>The line is the average of each bucket, the light band its lowest and highest second, the darker one covers nine of ten seconds. Hatched is a time without data. Dashed lines are events: a variable changed, a restart; whole ones with a name are deployments. A strip at the foot is a time in which a rule found something wrong. Every view is a link: copy the address.</p>
        <button onClick={() => (helpOpen.value = false)}>Close</button>
      </div>
    </dialog>
  );
}
