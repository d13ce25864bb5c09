/** What a page shows that the server will not talk to. */
import type { ApiError } from "../../api/client.ts";
import { ErrorDetails } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import { texts } from "../../texts/texts.ts";

/** Says why, and what to do about it. */
export function Refused({ error }: { error: ApiError }) {
  const isSignIn = error.status === 401;
  useTitle(texts.product);
  return (
    <main class="refused">
      <h1>{isSignIn ? texts.refused.signIn : texts.refused.host}</h1>
      <p>{isSignIn ? texts.refused.signInText : texts.refused.hostText}</p>
      <p class="muted">{error.message}</p>
      {error.requestId && <ErrorDetails code={error.code} requestId={error.requestId} />}
    </main>
  );
}
