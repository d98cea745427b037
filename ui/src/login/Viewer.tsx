/** Who is signed in, what he may do, and the way out. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, changePassword, fetchViewer, logout, role, who, type Role } from '../api';

const MAY: Record<Role, string> = { look: 'may look', change: 'may change', failover: 'may fail over', admin: 'may manage access' };

function Password({ onDone }: { onDone: () => void }) {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const [said, setSaid] = useState('');
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    try {
      await changePassword(current, next);
      onDone();
    } catch (x) {
      setSaid(x instanceof ApiError ? [x.message, x.remedy].filter(Boolean).join('. ') : String(x));
    }
  };
  return (
    <form onSubmit={submit}>
      <label for="current">Present password</label>
      <input id="current" type="password" autocomplete="current-password" value={current} onInput={(e) => setCurrent(e.currentTarget.value)} required />
      <label for="next">New password, 12 characters or more</label>
      <input id="next" type="password" autocomplete="new-password" value={next} onInput={(e) => setNext(e.currentTarget.value)} minLength={12} maxLength={128} required />
      <button type="submit">Change it</button>
      {said && <p class="bad" role="alert">{said}</p>}
    </form>
  );
}

/** A button with the viewer's name, and below it what he may do about his sessions. Nothing, where nobody is asked. */
export function Viewer() {
  const [open, setOpen] = useState(false);
  const [changing, setChanging] = useState(false);
  const [said, setSaid] = useState('');
  const [about, setAbout] = useState<{ via: string; limits: string[][] } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    fetchViewer().then(setAbout, () => setAbout(null));
    const away = (e: Event): void => {
      if (e instanceof KeyboardEvent ? e.key === 'Escape' : !box.current?.contains(e.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', away);
    document.addEventListener('keydown', away);
    return () => {
      document.removeEventListener('pointerdown', away);
      document.removeEventListener('keydown', away);
    };
  }, [open]);
  if (!who.value) return null;
  const out = (everywhere: boolean): void => {
    logout(everywhere).catch((x: unknown) => setSaid(x instanceof ApiError ? x.message : String(x)));
  };
  return (
    <div class="viewer" ref={box}>
      <button onClick={() => (setOpen(!open), setChanging(false), setSaid(''))} aria-expanded={open} aria-label={`Signed in as ${who.value}`} title={role.value ? `${who.value} ${MAY[role.value]}` : who.value}>{who.value}</button>
      {open && (
        <div class="viewer-menu pop">
          <p class="quiet">{who.value}{role.value && <> {MAY[role.value]}</>}{about?.limits.map((l) => `, only ${l.join(' ')}`)}{about?.via && `; signed in by ${about.via}`}</p>
          <button onClick={() => out(false)}>Sign out</button>
          <button onClick={() => out(true)}>Sign out everywhere</button>
          {!changing && about?.via === 'password' && <button onClick={() => setChanging(true)}>Change password…</button>}
          {changing && <Password onDone={() => (setChanging(false), setSaid('The password was changed; other sessions have ended.'))} />}
          {said && <p role="status">{said}</p>}
        </div>
      )}
    </div>
  );
}
