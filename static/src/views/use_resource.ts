/** Data that is loaded when a page opens, and reloaded on request. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/client.ts";

/** The data, or why it could not be loaded. */
export interface Resource<T> {
  value: T | undefined;
  error: ApiError | undefined;
  isBusy: boolean;
  again(): void;
}

/** Loads data; a later failure keeps it. */
export function useResource<T>(read: () => Promise<T>): Resource<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(true);
  const again = () => {
    setBusy(true);
    read().then((found) => {
      setValue(found);
      setError(undefined);
    }, (thrown) => setError(asApiError(thrown))).finally(() => setBusy(false));
  };
  useEffect(again, []);
  return { value, error, isBusy, again };
}
