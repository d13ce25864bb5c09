/** Something that is read when a page opens, and again when asked. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/client.ts";

/** What was read, or why it could not be. */
export interface Resource<T> {
  value: T | undefined;
  error: ApiError | undefined;
  isBusy: boolean;
  again(): void;
}

/** Reads; what was read before stays when a later reading fails. */
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
