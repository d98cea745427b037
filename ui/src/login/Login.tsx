/** Shown when the server asks who is there. */
import { useState } from 'preact/hooks';
import { ApiError, login } from '../api';

/** Asks for a user and a password, or a token, and trades them for a session. */
export function Login() {
  const [byToken, setByToken] = useState(false);
  const [user, setUser] = useState('');
  const [secret, setSecret] = useState('');
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    setBusy(true);
    try {
      await login(byToken ? { token: secret.trim() } : { user: user.trim(), password: secret });
    } catch (x) {
      setError(x instanceof ApiError ? [x.message, x.remedy].filter(Boolean).join('. ') : String(x));
      setSecret('');
    }
    setBusy(false);
  };
  const change = (): void => {
    setByToken(!byToken);
    setSecret('');
    setError('');
  };
  return (
    <main class="login">
      <h1>Risso</h1>
      <form onSubmit={submit}>
        {!byToken && (
          <>
            <label for="user">User</label>
            <input id="user" value={user} onInput={(e) => setUser(e.currentTarget.value)} autocomplete="username" autocapitalize="none" spellcheck={false} autofocus required />
          </>
        )}
        <label for="secret">{byToken ? 'Token' : 'Password'}</label>
        <input id="secret" key={String(byToken)} type="password" value={secret} onInput={(e) => setSecret(e.currentTarget.value)} autocomplete={byToken ? 'off' : 'current-password'} autofocus={byToken} required />
        <button type="submit" disabled={busy}>Sign in</button>
      </form>
      {error && <p class="bad" role="alert">{error}</p>}
      <p><button class="link" onClick={change}>{byToken ? 'Sign in with a user and a password' : 'Sign in with a token'}</button></p>
      <p class="quiet">Whoever runs <code>risso serve</code> makes users and tokens: <code>risso user add NAME</code>, <code>risso token create NAME</code>.</p>
    </main>
  );
}
