/**
 * Hooks of views: data that is loaded when a page opens, lists of passkeys and tokens, a value that is saved with each
 * change, a button's action, and the requests of a form.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/client.ts";
import { ErrorNote } from "../components/Notice.tsx";
import { useStore } from "../state/store.ts";
import { texts } from "../texts/texts.ts";
import { ChangeQueue } from "../state/app/change_queue.ts";
import { LatestRead } from "../state/app/latest_read.ts";
import { describePasskeyError } from "../state/app/passkeys.ts";

/** The data, or why it could not be loaded. */
export interface Resource<T> {
  value: T | undefined;
  error: ApiError | undefined;
  isBusy: boolean;
  /** Loads it again. Resolves when that has ended, also with an error. */
  again(): Promise<void>;
  /** Shows what a change answered. Reads that began before it don't count. */
  set(value: T): void;
}

/** Changes come in bursts; one more read answers all. In milliseconds. */
const READ_AFTER_MS = 200;

/**
 * Loads data; a later failure keeps it.
 *
 * @param eventKinds Kinds of events after which it's loaded again.
 */
export function useResource<T>(read: () => Promise<T>, ...eventKinds: string[]): Resource<T> {
  const store = useStore();
  const [latest] = useState(() => new LatestRead());
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(true);
  const take = (found: T) => {
    setValue(found);
    setError(undefined);
  };
  const again = () => {
    setBusy(true);
    return latest.run(read, take).catch((thrown) => setError(asApiError(thrown))).finally(() => setBusy(false));
  };
  const set = (changed: T) => latest.put(changed, take);
  useEffect(() => {
    void again();
    if (eventKinds.length === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readAgain = () => {
      timer = undefined;
      void again();
    };
    const stop = store.listen((event) => {
      if (event === undefined || eventKinds.includes(event.kind)) timer ??= setTimeout(readAgain, READ_AFTER_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return { value, error, isBusy, again, set };
}

/** A list that is loaded when shown and reloaded on request. */
export function useList<T>(read: () => Promise<T[]>) {
  const [latest] = useState(() => new LatestRead());
  const [items, setItems] = useState<T[]>();
  const [error, setError] = useState<ApiError>();
  const { accessVersion } = useStore();
  const version = accessVersion.value;
  const refresh = async () => {
    try {
      await latest.run(read, setItems);
      setError(undefined);
    } catch (thrown) {
      setError(asApiError(thrown));
    }
  };
  useEffect(() => void refresh(), [version]);
  const note = error && <ErrorNote title={texts.privacy.loadFailed} error={error} onRetry={() => void refresh()} />;
  return { items, note, refresh };
}

/**
 * A value that is saved with each change. The change shows at once, the last one wins on slow connections, too, and one
 * that fails is reported and shows the saved value again.
 *
 * @param saved The value on the server.
 * @param save Sends a value and updates `saved`.
 */
export function useSavedValue<T>(saved: T, save: (value: T) => Promise<void>): [T, (value: T) => void] {
  const store = useStore();
  const [queue] = useState(() => new ChangeQueue());
  const [change, setChange] = useState<{ value: T }>();
  const set = (value: T) => {
    const own = { value };
    setChange(own);
    queue.run(() => save(value)).catch((thrown) => store.report(thrown))
      .finally(() => setChange((last) => last === own ? undefined : last));
  };
  return [change ? change.value : saved, set];
}

/** The state of the action and how to start it. */
interface Action {
  isBusy: boolean;
  /** Why it last failed. */
  failure: string | undefined;
  run(): Promise<void>;
}

/** Creates an action of a button from a function: it runs once at a time, and its failure is shown next to it. */
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

/** A test of what a form holds. */
interface FormTest<T> {
  result: T | undefined;
  /** Call it when the form changes: an answer that is under way isn't about it then. */
  forget(): void;
  /** Tests, and takes the result. Rejects as `ask` does. */
  run(ask: () => Promise<T>): Promise<void>;
}

/** Keeps the result of a test for as long as the form is as it was tested. */
export function useFormTest<T>(): FormTest<T> {
  const [result, setResult] = useState<T>();
  const current = useRef<object | undefined>(undefined);
  const forget = () => {
    current.current = undefined;
    setResult(undefined);
  };
  return {
    result,
    forget,
    async run(ask) {
      forget();
      const own = current.current = {};
      const found = await ask();
      if (current.current === own) setResult(found);
    },
  };
}

/** Requests of a form, named by the button that starts them. */
export interface FormRequests<Name extends string> {
  /** The one that runs. */
  busy: Name | undefined;
  /** The last one if it failed. The fields stay as they are. */
  failure: { name: Name; error: ApiError } | undefined;
  /** Runs a request. Never rejects. */
  run(name: Name, request: () => Promise<unknown>): Promise<void>;
}

/** Runs the requests of a form. */
export function useFormRequests<Name extends string>(): FormRequests<Name> {
  const [busy, setBusy] = useState<Name>();
  const [failure, setFailure] = useState<{ name: Name; error: ApiError }>();
  return {
    busy,
    failure,
    async run(name, request) {
      setBusy(name);
      setFailure(undefined);
      try {
        await request();
      } catch (thrown) {
        setFailure({ name, error: asApiError(thrown) });
      }
      setBusy(undefined);
    },
  };
}
