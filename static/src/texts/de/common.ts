/** Texts used everywhere, and those of the page frame. */
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
  details: "Details",
  requestId: (id: string) => `Anfrage ${id}`,
  loading: "Wird geladen",
  chunkFailed: "Dieser Teil der Seite konnte nicht geladen werden",
  chunkFailedText:
    "Möglicherweise wurde der Server aktualisiert. Laden Sie die Seite neu, um die aktuelle Version zu erhalten.",

  errors: {
    noAnswer: "Der Server antwortet nicht",
    status: (status: number) => `Der Server hat mit Status ${status} geantwortet`,
    replyFailed: "Die Antwort ist aus unbekanntem Grund fehlgeschlagen",
  },

  banner: {
    untrustedProxy:
      "Ein Proxy leitet Anfragen an diesen Server weiter, steht aber nicht in trusted_proxies. Tragen Sie ihn dort ein, damit Parlor erkennen kann, wer zugreift.",
    bareProxy:
      "Diese Seite wurde über einen Proxy geöffnet, der verbirgt, wer zugreift. Der Zugriff ohne Anmeldung ist bis zum Neustart des Servers deaktiviert. Setzen Sie loopback_auth_bypass = false und tragen Sie den Proxy in trusted_proxies ein.",
    offline: "Der Server ist nicht erreichbar. Verbindung wird erneut versucht.",
  },

  refused: {
    signIn: "Anmeldung erforderlich",
    signInText:
      "Dieser Server ist geschützt. Öffnen Sie ihn auf dem Rechner, auf dem er läuft, unter seiner localhost-Adresse.",
    host: "Adresse nicht zugelassen",
    hostText:
      "Der Server kennt diesen Hostnamen nicht. Tragen Sie ihn in allowed_hosts ein und laden Sie die Seite neu.",
    localhostText: "Parlor öffnet sich nur über den Proxy in trusted_proxies. Verwenden Sie dessen Adresse.",
  },

  unknown: {
    title: "Seite nicht gefunden",
    text: "Unter dieser Adresse gibt es keine Seite.",
    home: "Zu den Chats",
  },
};
