/** Fingers do not hover: a tap on something with a title shows it for a while. */

const SHOWN_MS = 4000;

/** Listens to taps until the returned function is called. */
export function startTouch(): () => void {
  let box: HTMLElement | null = null;
  let timer = 0;
  const hide = (): void => {
    clearTimeout(timer);
    box?.remove();
    box = null;
  };
  const tap = (e: PointerEvent): void => {
    hide();
    if (e.pointerType !== 'touch') return;
    const el = (e.target as Element).closest<HTMLElement>('[title]');
    // What a tap does needs no words besides.
    if (!el?.title || (e.target as Element).closest('a,button,summary,input,select')) return;
    const at = el.getBoundingClientRect();
    box = document.createElement('div');
    box.className = 'pop said';
    box.role = 'status';
    box.textContent = el.title;
    document.body.append(box);
    box.style.left = `${Math.max(8, Math.min(innerWidth - box.offsetWidth - 8, at.left))}px`;
    box.style.top = `${scrollY + (at.bottom + box.offsetHeight + 8 > innerHeight ? at.top - box.offsetHeight - 4 : at.bottom + 4)}px`;
    timer = window.setTimeout(hide, SHOWN_MS);
  };
  document.addEventListener('pointerup', tap);
  return () => {
    document.removeEventListener('pointerup', tap);
    hide();
  };
}
