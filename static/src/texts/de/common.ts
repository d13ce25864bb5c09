/** Words used everywhere, and what the frame says. */
import type { common as English } from "../en/common.ts";

/** German. */
export const common: typeof English = {
  locale: "de",
  product: "Parlor",
  close: "Schließen",
  cancel: "Abbrechen",
  save: "Speichern",
  undo: "Rückgängig",
  retry: "Erneut versuchen",
  reload: "Seite neu laden",
  details: "Einzelheiten",
  requestId: (id: string) => `Anfrage ${id}`,
  loading: "Wird geladen",
  chunkFailed: "Dieser Teil der Seite konnte nicht geladen werden",
  chunkFailedText:
    "Vielleicht wurde der Server aktualisiert. Laden Sie die Seite neu, um die neue Fassung zu bekommen.",

  errors: {
    noAnswer: "Der Server antwortet nicht",
    status: (status: number) => `Der Server hat mit Status ${status} geantwortet`,
    replyFailed: "Die Antwort ist ohne Angabe eines Grundes fehlgeschlagen",
  },

  banner: {
    untrustedProxy:
      "Ein Proxy, der nicht eingetragen ist, leitet Anfragen an diesen Server weiter. Solange er nicht in trusted_proxies steht, kann Parlor nicht erkennen, wer anfragt.",
    bareProxy:
      "Diese Seite wurde über eine Adresse aufgerufen, die der Server nicht sieht: Ein Proxy verdeckt, wer anfragt. Der Zugang ohne Anmeldung ist bis zum Neustart abgeschaltet. Setzen Sie loopback_auth_bypass = false und tragen Sie den Proxy in trusted_proxies ein.",
    offline: "Der Server ist nicht erreichbar. Neuer Versuch läuft.",
  },

  refused: {
    signIn: "Anmeldung nötig",
    signInText: "Dieser Server ist geschützt. Öffnen Sie ihn auf dem Rechner, auf dem er läuft, unter localhost.",
    host: "Diese Adresse ist nicht zugelassen",
    hostText:
      "Der Server kennt den Namen nicht, unter dem er aufgerufen wurde. Tragen Sie ihn in allowed_hosts ein und laden Sie die Seite neu.",
  },

  unknown: { title: "Hier ist nichts", text: "Unter dieser Adresse gibt es keine Seite.", home: "Zu den Chats" },
};
