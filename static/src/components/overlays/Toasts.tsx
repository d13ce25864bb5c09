/**
 * The toasts at the bottom of the page, some with Undo.
 *
 * Toasts: none; shows those of the store. `store.toasts.show(text, { isError?, action? })` shows one, and
 * `store.toasts.offerUndo(text, label, undo, commit)` one with Undo.
 * ToastView: `toast`, `onDismiss()`; `onHold?(isHeld)` while hovered or focused.
 */
import type { Toast } from "../../state/app/toasts.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { IconButton } from "../Button.tsx";

/** Shows the toasts, as a polite live region. */
export function Toasts() {
  const { toasts } = useStore();
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.items.value.map((toast) => (
        <ToastView
          key={toast.id}
          toast={toast}
          onDismiss={() => toasts.dismiss(toast.id)}
          onHold={(isHeld) => toasts.hold(toast.id, isHeld)}
        />
      ))}
    </div>
  );
}

/** One toast. */
export function ToastView(
  { toast, onDismiss, onHold }: { toast: Toast; onDismiss: () => void; onHold?: (isHeld: boolean) => void },
) {
  return (
    <div
      class={toast.isError ? "toast error" : "toast"}
      onPointerEnter={() => onHold?.(true)}
      onPointerLeave={() => onHold?.(false)}
      onFocusIn={() => onHold?.(true)}
      onFocusOut={() => onHold?.(false)}
    >
      <span>{toast.text}</span>
      {toast.action && (
        <button type="button" class="toast-action" onClick={toast.action.run}>{toast.action.label}</button>
      )}
      <IconButton icon="close" label={texts.close} onClick={onDismiss} />
    </div>
  );
}
