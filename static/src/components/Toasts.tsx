/** The short messages at the foot of the page. */
import { useStore } from "../state/store.ts";
import { texts } from "../texts/texts.ts";
import { IconButton } from "./Button.tsx";

/** Shows the messages there are; a screen reader hears them when it has time. */
export function Toasts() {
  const { toasts } = useStore();
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.items.value.map((toast) => (
        <div key={toast.id} class={toast.isError ? "toast error" : "toast"}>
          <span>{toast.text}</span>
          {toast.action && (
            <button type="button" class="toast-action" onClick={toast.action.run}>{toast.action.label}</button>
          )}
          <IconButton icon="close" label={texts.close} onClick={() => toasts.dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
