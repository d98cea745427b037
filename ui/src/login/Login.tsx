/** Shown when the server asks for a token. */
import { useState } from 'preact/hooks';
import { ApiError, login } from '../api';

/** Asks for the token and trades it for a cookie. */
export function Login() {
  const [token, setToken] = useState('');
  const [error, setError] = useState('');
  const submit = async (e: Event): Promise<void> => {
    e.preventDefault();
    try {
      await login(token.trim());
    } catch (x) {
      setError(x instanceof ApiError ? [x.message, x.remedy].filter(Boolean).join('. ') : String(x));
    }
  };
  return (
    <main class="login">
      <h1>Risso</h1>
      <form onSubmit={submit}>
        <label for="token">This Risso requires a token.</label>
        <input id="token" type="password" value={token} onInput={(e) => setToken(e.currentTarget.value)} autocomplete="current-password" autofocus required />
        <button type="submit">Sign in</button>
      </form>
      {error && <p class="bad" role="alert">{error}</p>}
      <p class="quiet">Ask whoever runs <code>risso serve</code>.</p>
    </main>
  );
}
