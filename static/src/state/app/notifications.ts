/** Telling that a reply ended while nobody looks at the page. */

/** What a notification says, and where a click on it leads. */
export interface Notice {
  title: string;
  text: string;
  /** A second one of the same tag takes the place of the first: several tabs of one browser hear of the same reply. */
  tag: string;
  onClick: () => void;
}

/** Tells whether this browser can notify at all; on plain HTTP off this machine none can. */
export function canNotify(): boolean {
  return typeof globalThis.Notification === "function" && globalThis.isSecureContext;
}

/** Tells whether the person has refused it in the browser; only there it can be undone. */
export function isNotificationDenied(): boolean {
  return canNotify() && Notification.permission === "denied";
}

/** Asks the browser's question where it was not answered yet. */
export async function requestNotifications(): Promise<boolean> {
  if (!canNotify()) return false;
  if (Notification.permission === "default") return await Notification.requestPermission() === "granted";
  return Notification.permission === "granted";
}

/** Shows one, when nobody looks and the browser lets us. */
export function notifyWhenHidden(notice: Notice, document: Document): void {
  if (document.visibilityState !== "hidden" || !canNotify() || Notification.permission !== "granted") return;
  try {
    const notification = new Notification(notice.title, { body: notice.text, tag: notice.tag });
    notification.onclick = () => {
      globalThis.focus();
      notice.onClick();
      notification.close();
    };
  } catch {
    // Chrome on Android knows notifications of service workers only; there the list's dot has to do.
  }
}
