/** A microphone next to a field: what is said is added to its text. */
import { useState } from "preact/hooks";
import { IconButton } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { texts } from "../../texts/texts.ts";
import { DictationBar } from "./DictationBar.tsx";

/** @param label Name of the field, for the dialog. The button's name doesn't repeat it: there would be two controls of that name. */
export function DictateButton({ label, onText }: { label: string; onText: (text: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <IconButton icon="microphone" label={texts.talk.dictateInto} onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={label} onClose={close}>
          <DictationBar prompt={label} onText={onText} onClose={close} />
        </Dialog>
      )}
    </>
  );
}

/** Adds dictated text to a text. */
export function addDictated(text: string, dictated: string): string {
  return text.trim() === "" ? dictated : `${text.trimEnd()} ${dictated}`;
}
