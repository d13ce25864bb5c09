/**
 * Modal dialogs: Dialog for one question or short form, Sheet for choices and details within reach of the thumb.
 *
 * Props: `title`, `onClose()`, `children`; `actions?` (buttons in the footer). Rendered means open.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "../Button.tsx";
import { texts } from "../../texts/texts.ts";

/** Shows its children over the page, which is inert while it is open. */
export function Modal(
  { label, class: className, onClose, children }: {
    label: string;
    class: string;
    onClose: () => void;
    children: ComponentChildren;
  },
) {
  const element = useRef<HTMLDialogElement>(null);
  const isGone = useRef(false);
  useLayoutEffect(() => {
    const dialog = element.current;
    if (!dialog) return;
    const opener = document.activeElement;
    dialog.showModal();
    return () => {
      isGone.current = true;
      const hadFocus = dialog.contains(document.activeElement) || document.activeElement === document.body;
      dialog.close();
      if (hadFocus && opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
    };
  }, []);
  const close = () => {
    if (!isGone.current) onClose();
  };
  // At once: the close event comes later, when the reader may have reopened the dialog.
  const onCancel = (event: Event) => {
    if (event.target !== element.current) return; // of a file input inside
    event.preventDefault();
    close();
  };
  // Safari keeps the key for itself in a search field, also in an empty one.
  const onKeyDown = (event: KeyboardEvent) => {
    const field = event.target as HTMLInputElement;
    if (event.key !== "Escape" || event.defaultPrevented || field.type !== "search" || field.value !== "") return;
    event.preventDefault();
    close();
  };
  // Only a click on the backdrop targets the dialog itself.
  const onClick = (event: MouseEvent) => {
    if (event.target === element.current) close();
  };
  return (
    <dialog
      ref={element}
      class={`modal ${className}`}
      aria-label={label}
      onCancel={onCancel}
      onClose={close}
      onKeyDown={onKeyDown}
      onClick={onClick}
    >
      {children}
    </dialog>
  );
}

/** Props of a dialog and a sheet. */
export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
}

/** A centered dialog. A field inside can take the initial focus with `autofocus`. */
export function Dialog(props: DialogProps) {
  return (
    <Modal class="dialog" label={props.title} onClose={props.onClose}>
      <ModalContent {...props} />
    </Modal>
  );
}

/** Header, scrolling body, footer. */
function ModalContent({ title, onClose, children, actions }: DialogProps) {
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

/** A bottom sheet on phones, for choices and details. */
export function Sheet(props: DialogProps) {
  return (
    <Modal class="sheet" label={props.title} onClose={props.onClose}>
      <ModalContent {...props} />
    </Modal>
  );
}
