/**
 * A sheet from the lower edge on a phone; where there is room it looks like a dialog.
 *
 * Props: `title`, `onClose()`, `children`; `actions?`. Rendered means open.
 */
import { type DialogProps, ModalContent } from "./Dialog.tsx";
import { Modal } from "./Modal.tsx";

/** For choices and details that a phone shows in reach of the thumb. */
export function Sheet(props: DialogProps) {
  return (
    <Modal class="sheet" label={props.title} onClose={props.onClose}>
      <ModalContent {...props} />
    </Modal>
  );
}
