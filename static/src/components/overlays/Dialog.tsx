/**
 * A dialog for one question or one short form.
 *
 * Props: `title`, `onClose()`, `children`; `actions?` (buttons at its foot). Rendered means open.
 */
import type { ComponentChildren } from "preact";
import { texts } from "../../texts/texts.ts";
import { IconButton } from "../Button.tsx";
import { Modal } from "./Modal.tsx";

/** What a dialog and a sheet take. */
export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
}

/** In the middle of the page. A field inside that should have the focus says `autofocus`. */
export function Dialog(props: DialogProps) {
  return (
    <Modal class="dialog" label={props.title} onClose={props.onClose}>
      <ModalContent {...props} />
    </Modal>
  );
}

/** Head, scrolling body, foot. */
export function ModalContent({ title, onClose, children, actions }: DialogProps) {
  return (
    <div class="modal-content">
      <header class="modal-head">
        <h2>{title}</h2>
        <IconButton icon="close" label={texts.close} onClick={onClose} />
      </header>
      <div class="modal-body">{children}</div>
      {actions && <footer class="actions-row modal-foot">{actions}</footer>}
    </div>
  );
}
