/**
 * A dialog for one question or one short form.
 *
 * Props: `title`, `onClose()`, `children`; `actions?` (buttons at its foot). Rendered means open.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "../Button.tsx";
import { texts } from "../../texts/texts.ts";

/** Shows its children over the page, which is inert meanwhile. */
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
  // At once: the event that follows the closing comes later, when the reader may have asked for the dialog again.
  const onCancel = (event: Event) => {
    if (event.target !== element.current) return; // of a file field inside
    event.preventDefault();
    close();
  };
  // Only the backdrop is the dialog itself; everything inside is a child.
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
      onClick={onClick}
    >
      {children}
    </dialog>
  );
}

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

/** For choices and details that a phone shows in reach of the thumb. */
export function Sheet(props: DialogProps) {
  return (
    <Modal class="sheet" label={props.title} onClose={props.onClose}>
      <ModalContent {...props} />
    </Modal>
  );
}
