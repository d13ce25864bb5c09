/** An action of a button: it runs once at a time, and its failure is shown next to it. */
import { useState } from "preact/hooks";
import { describePasskeyError } from "../state/app/passkeys.ts";

/** The state of the action and how to start it. */
export interface Action {
  isBusy: boolean;
  /** Why it last failed. */
  failure: string | undefined;
  run(): Promise<void>;
}

/** Creates an action from a function. */
export function useAction(act: () => Promise<void>): Action {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await act();
    } catch (thrown) {
      setFailure(describePasskeyError(thrown));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, failure, run };
}
