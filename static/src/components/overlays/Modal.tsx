/**
 * What all modal things stand on: the native `<dialog>`, open as long as it is rendered.
 *
 * Props: `label` (its name), `onClose()` (Escape, a click beside it), `children`; `class?` says how it looks.
 * Focus goes in when it opens and back to where it was when it goes.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

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
