/** A link that downloads a response of our server. */
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { findStorage } from "../../state/app/device.ts";
import { findDeviceToken } from "../../state/app/device_token.ts";
import { useStore } from "../../state/store.ts";

/**
 * Usually the browser downloads it as a stream. On a device that signs in with a token, which links don't send, the
 * page fetches it first.
 */
export function DownloadLink(
  { path, fileName, label, children, kind = "plain" }: {
    path: string;
    fileName: string;
    /** Accessible name, if the visible label is ambiguous. */
    label?: string;
    children: string;
    kind?: "plain" | "primary";
  },
) {
  const store = useStore();
  const [isBusy, setBusy] = useState(false);
  if (findDeviceToken(findStorage(globalThis.window)) === undefined) {
    return (
      <a class={`button ${kind}`} href={path} download={fileName} aria-label={label}>
        <Icon name="down" />
        <span>{children}</span>
      </a>
    );
  }
  const save = async () => {
    setBusy(true);
    try {
      const answer = await store.api.client.send("GET", path);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = fileName;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    } catch (thrown) {
      store.report(thrown);
    } finally {
      setBusy(false);
    }
  };
  return <Button kind={kind} icon="down" isBusy={isBusy} label={label} onClick={() => void save()}>{children}</Button>;
}
