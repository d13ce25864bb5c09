/** Texts used everywhere, and those of the page frame, the sidebar, the chat list and the command palette. */
import type { shell as English } from "../en/shell.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const shell: typeof English = {
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
  hiddenShown: "Mit sichtbaren versteckten Zeichen",
  mixedScripts: (scripts: string) => `gemischt: ${scripts}`,
  chunkFailed: "Dieser Teil der Seite konnte nicht geladen werden",
  chunkFailedText:
    "Möglicherweise wurde der Server aktualisiert. Laden Sie die Seite neu, um die aktuelle Version zu erhalten.",

  errors: {
    noAnswer: "Der Server antwortet nicht",
    proxySignIn: "Ihre Anmeldung beim Proxy vor dem Server ist abgelaufen",
    queued: "Noch nicht gesendet. Parlor sendet es, sobald der Server antwortet.",
    inTrash:
      "Es ist im Papierkorb. Stellen Sie es in den Einstellungen unter „Papierkorb“ wieder her und versuchen Sie es dann erneut.",
    status: (status: number) => `Der Server hat mit Status ${status} geantwortet`,
    replyFailed: "Die Antwort ist aus unbekanntem Grund fehlgeschlagen",
  },

  banner: {
    untrustedProxy:
      "Ein Proxy leitet Anfragen an diesen Server weiter, steht aber nicht in trusted_proxies. Tragen Sie ihn dort ein, damit Parlor erkennen kann, wer zugreift.",
    bareProxy:
      "Diese Seite wurde über einen Proxy geöffnet, der verbirgt, wer zugreift. Der Zugriff ohne Anmeldung ist bis zum Neustart des Servers deaktiviert. Setzen Sie loopback_auth_bypass = false und tragen Sie den Proxy in trusted_proxies ein.",
    offline: "Der Server ist nicht erreichbar. Verbindung wird erneut versucht.",
    proxySignIn:
      "Ihre Anmeldung beim Proxy vor dem Server ist abgelaufen. Nicht gesendete Änderungen bleiben in diesem Browser und werden nach der Anmeldung gesendet.",
    toProxySignIn: "Beim Proxy anmelden",
  },

  refused: {
    signIn: "Anmeldung erforderlich",
    signInText:
      "Dieser Server ist geschützt. Öffnen Sie ihn auf dem Rechner, auf dem er läuft, unter seiner localhost-Adresse.",
    host: "Adresse nicht zugelassen",
    hostText:
      "Der Server kennt diesen Hostnamen nicht. Tragen Sie ihn in allowed_hosts ein und laden Sie die Seite neu.",
    localhostText: "Parlor ist nur über den Proxy in trusted_proxies erreichbar. Verwenden Sie dessen Adresse.",
  },

  unknown: {
    title: "Seite nicht gefunden",
    text: "Unter dieser Adresse gibt es keine Seite.",
    home: "Zu den Chats",
  },

  nav: {
    label: "Chats und Einstellungen",
    open: "Chatliste öffnen",
    fold: "Seitenleiste ausblenden",
    unfold: "Seitenleiste einblenden",
    characters: "Figuren",
    newChat: "Neuer Chat",
    chats: "Chats",
    settings: "Einstellungen",
    today: "Heute",
    yesterday: "Gestern",
    thisWeek: "Diese Woche",
    none: "Hier erscheinen Ihre Chats.",
    untitled: "Ohne Titel",
    failed: "Die Chats konnten nicht geladen werden",
    answering: "Antwort wird geschrieben",
    replyEnded: "Antwort fertig",
    search: "Suche",
    library: "Bibliothek",
    activity: "Aktivität",
    runningCount: (n: number) => `, ${n} laufend`,
    branch: "Zweig",
    unread: "Ungelesen",
    waitingCalls: (n: number) => count(n, { one: "Freigabe offen", other: "Freigaben offen" }),
    pinned: "Angeheftet",
    chatCount: (n: number) => count(n, { one: "Chat", other: "Chats" }),
    menu: (title: string) => `Aktionen für „${title}“`,
    select: "Auswählen",
    rename: "Umbenennen",
    pin: "Anheften",
    unpin: "Lösen",
    file: "In Ordner verschieben",
    exportAs: (format: string) => `Als ${format} exportieren`,
    print: "Drucken",
    delete: "Löschen",
    renameTitle: "Chat umbenennen",
    titleLabel: "Titel",
    fileTitle: "Chat in Ordner verschieben",
    folderLabel: "Ordner",
    folderHint: "Ein neuer Name legt einen Ordner an. Leere Ordner verschwinden.",
    removeFromFolder: "Aus dem Ordner entfernen",
    removed: "Chat gelöscht",
    skip: "Zum Chat springen",
  },
  home: {
    continue: "Fortsetzen",
    all: "Alle Figuren",
    addCharacter: "Figur hinzufügen",
    starters: "Vorschläge",
    inserted: "Vorschlag eingefügt",
    starterTexts: [
      { label: "Etwas erklären", text: "Erkläre mir das in einfachen Worten, mit einem Beispiel: " },
      {
        label: "Text verbessern",
        text: "Verbessere diesen Text. Behalte Sinn und Ton bei und liste auf, was du geändert hast:\n\n",
      },
      { label: "Etwas planen", text: "Hilf mir, das zu planen. Frag mich zuerst, was du wissen musst: " },
    ],
    replies: (n: number) => count(n, { one: "Antwort läuft", other: "Antworten laufen" }),
    show: "Anzeigen",
  },

  palette: {
    title: "Befehle",
  },
};
