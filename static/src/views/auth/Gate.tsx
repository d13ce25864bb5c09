/** The gate before the page: sign-in, pairing, approval of the command line. */
import type { ComponentChildren } from "preact";
import type { ApiError } from "../../api/client.ts";
import { lazy } from "../../components/Lazy.tsx";
import { ErrorDetails } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import { isLoopback } from "../../state/app/loopback.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

const SignInScreen = lazy(() => import("./SignInScreen.tsx").then(({ SignInScreen }) => SignInScreen));
const PairScreen = lazy(() => import("./PairScreen.tsx").then(({ PairScreen }) => PairScreen));
const SetupScreen = lazy(() => import("../setup/SetupScreen.tsx").then((file) => file.SetupScreen));
const CliScreen = lazy(() => import("./CliScreen.tsx").then(({ CliScreen }) => CliScreen));

/** Renders its children once access is granted. */
export function Gate({ children }: { children: ComponentChildren }) {
  const { auth, device, hostRefusal, refusal, router, setup } = useStore();
  const shown = router.screen.value;
  const screen = shown.name;
  if (screen === "cli") return <CliScreen />;
  if (screen === "pair") return <PairScreen />;
  const status = auth.value;
  const error = hostRefusal.value ?? refusal.value;
  if (error !== undefined && error.status !== 401) return <AccessRefused error={error} />;
  if (error !== undefined) {
    if (status === undefined) return <AccessRefused error={error} />;
    // No passkey exists, but access is denied: the server requires its pairing code first.
    return status.paired || !status.passkeys_supported ? <SignInScreen /> : <PairScreen />;
  }
  if (shown.name === "welcome") return <SetupScreen key={shown.step} step={shown.step} />;
  // The first-run setup has a passkey step of its own.
  const isWelcome = screen === "home" && setup.value?.completed !== true;
  if (!isWelcome && status?.bypass === "grace" && status.passkeys_supported && !device.isPairingDeclined.value) {
    return <PairScreen onLater={() => device.isPairingDeclined.value = true} />;
  }
  return <>{children}</>;
}

/** Explains why access was refused and what to do. */
function AccessRefused({ error }: { error: ApiError }) {
  const isSignIn = error.status === 401;
  const t = texts.refused;
  useTitle(texts.product);
  return (
    <main class="refused">
      <h1>{isSignIn ? t.signIn : t.host}</h1>
      <p>{isSignIn ? t.signInText : isLoopback(globalThis.location.hostname) ? t.localhostText : t.hostText}</p>
      <p class="muted">{error.message}</p>
      {error.requestId && <ErrorDetails code={error.code} requestId={error.requestId} />}
    </main>
  );
}
