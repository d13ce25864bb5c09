/** A button that copies a text. */
import { useEffect, useState } from "preact/hooks";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { IconButton } from "../Button.tsx";

/** How long the button confirms, in milliseconds. */
const SHOW_MS = 1500;

/** A button that copies a text to the clipboard. */
export function CopyButton({ text }: { text: string }) {
  const store = useStore();
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), SHOW_MS);
    return () => clearTimeout(timer);
  }, [isDone]);
  const onClick = async () => {
    try {
      await copyText(text);
      setDone(true);
    } catch {
      store.toasts.show(texts.chat.copyFailed, { isError: true });
    }
  };
  return (
    <IconButton
      icon={isDone ? "check" : "copy"}
      label={isDone ? texts.chat.copied : texts.chat.copy}
      onClick={onClick}
    />
  );
}

/**
 * Copies a text to the clipboard. On plain HTTP there is no clipboard API, so it uses the old command. @throws {Error}
 */
export async function copyText(text: string): Promise<void> {
  if (globalThis.navigator.clipboard) return await globalThis.navigator.clipboard.writeText(text);
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  if (!isCopied) throw new Error("Can't copy: the browser refused");
}
