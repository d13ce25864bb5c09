/**
 * The toasts at the bottom of the page or above the composer, which leaves their height free; some with Undo.
 *
 * Toasts: none; shows those of the store. `store.toasts.show(text, { isError?, action? })` shows one, and
 * `store.toasts.offerUndo(text, label, undo, commit)` one with Undo.
 * ToastView: `toast`, `onDismiss()`; `onHold?(isHeld)` while hovered or focused.
 */
import { useEffect, useRef } from "preact/hooks";
import type { Toast } from "../../state/app/toasts.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { IconButton } from "../Button.tsx";
import { watchSize } from "../hooks.ts";

/** Space above and below the toasts; below, it's in controls.css. */
const MARGIN_PX = 8;

/** Shows the toasts, as a polite live region. */
export function Toasts() {
  const { toasts } = useStore();
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { style } = document.documentElement;
    const stop = watchSize([element.current!], ([entry]) => {
      const { height } = entry!.contentRect;
      style.setProperty("--toasts-height", `${height === 0 ? 0 : height + 2 * MARGIN_PX}px`);
    });
    return () => {
      stop();
      style.removeProperty("--toasts-height");
    };
  }, []);
  return (
    <div ref={element} class="toasts" role="status" aria-live="polite">
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
