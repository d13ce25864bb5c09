/** Lists of passkeys and tokens. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** A list that is loaded when shown and reloaded on request. */
export function useList<T>(read: () => Promise<T[]>) {
  const [items, setItems] = useState<T[]>();
  const [error, setError] = useState<ApiError>();
  const { accessVersion } = useStore();
  const version = accessVersion.value;
  const refresh = async () => {
    try {
      setItems(await read());
      setError(undefined);
    } catch (thrown) {
      setError(asApiError(thrown));
    }
  };
  useEffect(() => void refresh(), [version]);
  const note = error && <ErrorNote title={texts.privacy.loadFailed} error={error} onRetry={() => void refresh()} />;
  return { items, note, refresh };
}
