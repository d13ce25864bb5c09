/**
 * Asks for confirmation before an action that can't be undone.
 *
 * Props: `title`, `text`, `action` (label of the button), `act()`, `onClose()`.
 */
import type { ComponentChildren } from "preact";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { Notice } from "../../components/Notice.tsx";
import { texts } from "../../texts/texts.ts";
import { useAction } from "../hooks.tsx";

/** Closes after success; a failure keeps it open. */
export function ConfirmDialog(
  { title, children, action, act, onClose }: {
    title: string;
    children: ComponentChildren;
    action: string;
    act: () => Promise<void>;
    onClose: () => void;
  },
) {
  const { isBusy, failure, run } = useAction(async () => {
    await act();
    onClose();
  });
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" isBusy={isBusy} onClick={run}>{action}</Button>
          <Button kind="quiet" onClick={onClose}>{texts.cancel}</Button>
        </>
      }
    >
      {children}
      {failure && <Notice tone="danger">{failure}</Notice>}
    </Dialog>
  );
}
