/** The first visit: a model, a name, a passkey, each to be skipped; then the built-in character says hello. */
import { useState } from "preact/hooks";
import type { IconName } from "../../components/Icon.tsx";
import { beginFirstChat } from "../../state/app/first_chat.ts";
import { WELCOME_STEPS, type WelcomeStep } from "../../state/app/router.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GateFrame } from "../auth/GateFrame.tsx";
import { ModelStep } from "./ModelStep.tsx";
import { NameStep } from "./NameStep.tsx";
import { PasskeyStep } from "./PasskeyStep.tsx";

/** What a step gets. */
export interface StepProps {
  /** Goes on, whether the step was done or skipped. */
  onNext: () => void;
  /** The page goes on at this moment. */
  isLeaving: boolean;
}

const ICONS: Record<WelcomeStep, IconName> = { model: "plug", name: "user", passkey: "shield" };
const PARTS = { model: ModelStep, name: NameStep, passkey: PasskeyStep };

/** One step. Each has an address, so that the browser's back button goes one back. */
export function WelcomeScreen({ step }: { step: WelcomeStep }) {
  const store = useStore();
  const t = texts.welcome;
  const [isLeaving, setLeaving] = useState(false);
  const at = WELCOME_STEPS.indexOf(step);
  const next = WELCOME_STEPS[at + 1];
  const Part = PARTS[step];
  const goOn = async () => {
    if (next !== undefined) return store.router.go(`/welcome/${next}`);
    setLeaving(true);
    try {
      await beginFirstChat(store);
    } catch (thrown) {
      store.report(thrown);
      setLeaving(false);
    }
  };
  return (
    <GateFrame title={t.titles[step]} icon={ICONS[step]}>
      <p class="muted welcome-step">{t.step(at + 1, WELCOME_STEPS.length)}</p>
      <Part onNext={() => void goOn()} isLeaving={isLeaving} />
    </GateFrame>
  );
}
