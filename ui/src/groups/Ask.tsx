/** The plan of a change, and a question: nothing is changed before somebody said yes. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, changeGroup, mayFailOver, NO_FAILOVER, type Changed, type GroupMember, type GroupOrder, type MemberRule, type MemberStatus } from '../api';
import { Remedy } from '../common/parts';
import { nextStatuses, outageWords, question, ruleWords, RULES } from './words';

/** What somebody pressed: an order, or a member that is to be changed in a way that has to be said yet. */
export type Wish = { order: GroupOrder } | { group: string; member: GroupMember };

type Trouble = { what: string; remedy: string };

const troubleOf = (e: unknown): Trouble => (e instanceof ApiError ? { what: e.message, remedy: e.remedy } : { what: String(e), remedy: '' });

function MemberForm({ group, m, onOrder }: { group: string; m: GroupMember; onOrder: (o: GroupOrder) => void }) {
  const [status, setStatus] = useState<MemberStatus>(m.status);
  const [weight, setWeight] = useState(String(m.weight));
  const [rule, setRule] = useState<MemberRule>(m.rule);
  const [center, setCenter] = useState(m.center ?? '');
  const w = Number(weight);
  const fits = weight.trim() !== '' && w >= 0 && w <= 1000;
  const submit = (e: Event): void => {
    e.preventDefault();
    onOrder({ do: 'member', group, member: m.name, ...(status === m.status ? {} : { status }), ...(w === m.weight ? {} : { weight: w }), ...(rule === m.rule ? {} : { rule }), ...(center.trim() === (m.center ?? '') ? {} : { center: center.trim() }) });
  };
  return (
    <form onSubmit={submit}>
      <label>status <select value={status} onChange={(e) => setStatus(e.currentTarget.value as MemberStatus)}>{[m.status, ...nextStatuses(m.status)].map((s) => <option key={s}>{s}</option>)}</select></label>
      <label>weight of reads <input inputMode="decimal" class="short" value={weight} onInput={(e) => setWeight(e.currentTarget.value)} aria-invalid={!fits} /></label>
      <label>promoted <select value={rule} onChange={(e) => setRule(e.currentTarget.value as MemberRule)}>{RULES.map((r) => <option key={r} value={r}>{ruleWords(r)}</option>)}</select></label>
      <label>data center <input class="short" value={center} onInput={(e) => setCenter(e.currentTarget.value)} /></label>
      <button type="submit" disabled={!fits || (status === m.status && w === m.weight && rule === m.rule && center.trim() === (m.center ?? ''))}>Show the plan</button>
      {m.status === 'PRIMARY' && <p class="quiet">The status of a primary changes when another member becomes it.</p>}
    </form>
  );
}

/** The dialog. onDone is called when something was changed. */
export function Ask({ wish, onClose, onDone }: { wish: Wish; onClose: () => void; onDone: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [order, setOrder] = useState<GroupOrder | null>('order' in wish ? wish.order : null);
  const [plan, setPlan] = useState<Changed | null>(null);
  const [done, setDone] = useState<Changed | null>(null);
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  useEffect(() => box.current?.showModal(), []);
  useEffect(() => {
    if (!order) return;
    let gone = false;
    changeGroup(order, true).then((c) => !gone && setPlan(c), (e: unknown) => !gone && setTrouble(troubleOf(e)));
    return () => { gone = true; };
  }, [order]);
  const carryOut = (): void => {
    if (!order || !plan) return;
    setBusy(true);
    // What was shown is what is done: to that member, whoever would be the best by now.
    const exact: GroupOrder = order.do === 'switchover' || order.do === 'failover' ? { ...order, to: plan.new } : order;
    changeGroup(exact, false).then(setDone, (e: unknown) => setTrouble(troubleOf(e))).finally(() => (setBusy(false), onDone()));
  };
  const title = done ? 'It is done' : order && plan ? question(order, plan) : 'member' in wish ? `Change ${wish.member.name}` : 'The plan';
  const barred = !mayFailOver.value;
  return (
    <dialog ref={box} class="g-ask" aria-label={title} onClose={onClose}>
      <div>
        <h2>{title}</h2>
        {'member' in wish && !order && <MemberForm group={wish.group} m={wish.member} onOrder={setOrder} />}
        {order && !plan && !trouble && <p class="quiet">The servers are asked what would be done…</p>}
        {plan && !done && (
          <>
            <p class="quiet">{order?.do === 'switchover' || order?.do === 'failover' ? 'In this order; if a step fails before the new primary takes writes, a switchover is taken back:' : 'This is what changes:'}</p>
            <ol class="g-plan" tabIndex={0} aria-label="Steps">{(plan.plan ?? []).map((s, i) => <li key={i}>{s}</li>)}</ol>
          </>
        )}
        {busy && <p aria-live="polite">It is being done; the page shows each step.</p>}
        {trouble && <p class="bad" role="alert">{trouble.what}{trouble.remedy && <> <Remedy text={trouble.remedy} /></>}</p>}
        {done?.receipt && <p role="status">{done.receipt.words}; {outageWords(done.receipt)}.</p>}
        {barred && <p class="quiet">{NO_FAILOVER}</p>}
        <p class="g-answer">
          {plan && !done && !trouble && <button class="g-yes" disabled={busy || barred} title={barred ? NO_FAILOVER : undefined} onClick={carryOut}>Yes, do it</button>}
          <button onClick={() => box.current?.close()}>{done || trouble || busy ? 'Close' : 'Cancel'}</button>
        </p>
      </div>
    </dialog>
  );
}
