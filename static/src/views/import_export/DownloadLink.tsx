/** A link that downloads a response of our server. */
import { useState } from "preact/hooks";
import { downloadFile, needsFetch } from "../../components/ApiFile.tsx";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
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
  if (!needsFetch(path)) {
    return (
      <a class={`button ${kind}`} href={path} download={fileName} aria-label={label}>
        <Icon name="down" />
        <span>{children}</span>
      </a>
    );
  }
  const save = async () => {
    setBusy(true);
    await downloadFile(store, path, fileName);
    setBusy(false);
  };
  return <Button kind={kind} icon="down" isBusy={isBusy} label={label} onClick={() => void save()}>{children}</Button>;
}
