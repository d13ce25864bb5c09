/** Decides whether something stands before the page: signing in, pairing, the command line's question. */
import type { ComponentChildren } from "preact";
import { lazy } from "../../components/Lazy.tsx";
import { useStore } from "../../state/store.ts";
import { Refused } from "../shell/AccessRefused.tsx";

const SignInScreen = lazy(() => import("./SignInScreen.tsx").then(({ SignInScreen }) => SignInScreen));
const PairScreen = lazy(() => import("./PairScreen.tsx").then(({ PairScreen }) => PairScreen));
const WelcomeScreen = lazy(() => import("../setup/SetupScreen.tsx").then((file) => file.WelcomeScreen));
const CliScreen = lazy(() => import("./CliScreen.tsx").then(({ CliScreen }) => CliScreen));

/** Shows its children to whoever is in. */
export function Gate({ children }: { children: ComponentChildren }) {
  const { auth, device, refusal, router, setup } = useStore();
  const shown = router.screen.value;
  const screen = shown.name;
  if (screen === "cli") return <CliScreen />;
  if (screen === "pair") return <PairScreen />;
  const status = auth.value;
  const error = refusal.value;
  if (error !== undefined && error.status !== 401) return <Refused error={error} />;
  if (error !== undefined) {
    if (status === undefined) return <Refused error={error} />;
    // Nobody is enrolled, and yet nobody is let in: the server wants its code first.
    return status.paired || !status.passkeys_supported ? <SignInScreen /> : <PairScreen />;
  }
  if (shown.name === "welcome") return <WelcomeScreen key={shown.step} step={shown.step} />;
  // The wizard, which "/" leads to on the first visit, has the passkey as a step of its own.
  const isWelcome = screen === "home" && setup.value?.completed !== true;
  if (!isWelcome && status?.bypass === "grace" && status.passkeys_supported && !device.isPairingDeclined.value) {
    return <PairScreen onLater={() => device.isPairingDeclined.value = true} />;
  }
  return <>{children}</>;
}
