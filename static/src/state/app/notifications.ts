/** Notifications of replies that end while the page is hidden. */

/** The content of a notification and what a click does. */
export interface PageNotification {
  title: string;
  text: string;
  /** Replaces one with the same tag: several tabs receive the same event. */
  tag: string;
  onClick: () => void;
}

/** Returns whether this browser can show notifications. On plain HTTP off this machine none can. */
export function canNotify(): boolean {
  return typeof globalThis.Notification === "function" && globalThis.isSecureContext;
}

/** Returns whether the user denied notifications. Only the browser's settings can change that. */
export function isNotificationDenied(): boolean {
  return canNotify() && Notification.permission === "denied";
}

/** Requests permission unless it was answered before. */
export async function requestNotifications(): Promise<boolean> {
  if (!canNotify()) return false;
  if (Notification.permission === "default") return await Notification.requestPermission() === "granted";
  return Notification.permission === "granted";
}

/** Shows a notification if the page is hidden and permission is granted. */
export function notifyWhenHidden({ title, text, tag, onClick }: PageNotification, document: Document): void {
  if (document.visibilityState !== "hidden" || !canNotify() || Notification.permission !== "granted") return;
  try {
    const notification = new Notification(title, { body: text, tag });
    notification.onclick = () => {
      globalThis.focus();
      onClick();
      notification.close();
    };
  } catch {
    // Chrome on Android only supports notifications of service workers; there, the list only shows a dot.
  }
}
