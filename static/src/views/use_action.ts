/** One thing a button does: it runs once at a time, and its failure stands beside it. */
import { useState } from "preact/hooks";
import { describePasskeyError } from "../state/app/passkeys.ts";

/** The state of the action, and what starts it. */
export interface Action {
  isBusy: boolean;
  /** Why it failed last time, in words. */
  failure: string | undefined;
  run(): Promise<void>;
}

/** Makes an action of a function. */
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
