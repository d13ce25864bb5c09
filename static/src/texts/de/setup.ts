/** Texts of the first visit. */
import type { setup as English } from "../en/setup.ts";

/** German. */
export const setup: typeof English = {
  welcome: {
    step: (at: number, of: number) => `Schritt ${at} von ${of}`,
    titles: { model: "Modell wählen", name: "Ihr Name", passkey: "Parlor mit einem Passkey schützen" },
    modelText: "Zum Chatten braucht Parlor ein Sprachmodell. Auf diesem Rechner wird nach Servern gesucht.",
    modelThere: (name: string) => `„${name}“ wird verwendet. Sie können das jederzeit in den Einstellungen ändern.`,
    nameHint:
      "So können Figuren und Modelle Sie ansprechen. Der Name bleibt auf diesem Server und wird nur an Ihre Modelle gesendet.",
    passkeyLocal:
      "Auf diesem Rechner brauchen Sie keinen Passkey. Von anderen Geräten aus verlangt Parlor einen, und jede Adresse hat ihren eigenen. Sie können jetzt einen für diese Adresse erstellen.",
    passkeyThere:
      "Diese Adresse hat schon einen Passkey. Weitere Geräte fügen Sie unter Einstellungen, Privatsphäre hinzu.",
    goOn: "Weiter",
    skip: "Überspringen",
    start: "Chat beginnen",
    container:
      "Parlor läuft in einem Container und sucht nur darin. Um auch auf dem Host zu suchen, setzen Sie diese Variable wie in compose.yaml und starten Sie den Container neu.",
    elsewhere: (hosts: string) =>
      `Parlor hat ${hosts} durchsucht. Ein Server dort wird nur gefunden, wenn er Verbindungen von anderen Rechnern annimmt.`,
    listen: "Starten Sie jeden Server so:",
    listenNote: "Andere Rechner in Ihrem Netz können ihn dann ebenfalls erreichen.",
  },
  quickModel: {
    title: "Oder jetzt ein Modell herunterladen",
    text: (memory: string, disk: string) =>
      `Diese passen auf diesen Rechner mit ${memory} Arbeitsspeicher und ${disk} freiem Speicherplatz. Parlor startet das Modell für Sie.`,
    none: (memory: string, disk: string) =>
      `Dieser Rechner hat ${memory} Arbeitsspeicher und ${disk} freien Speicherplatz, zu wenig für die Modelle, die Parlor kennt. Nutzen Sie einen Server auf einem anderen Rechner.`,
    failed: "Es ließen sich keine Modelle für diesen Rechner finden",
    levels: { fast: "Schnell", balanced: "Ausgewogen", best: "Beste Qualität" },
    memory: (size: string) => `braucht ${size} Arbeitsspeicher`,
    speed: (words: string) => `etwa ${words} Wörter pro Sekunde`,
    starting: "Das Modell startet",
    start: "Starten",
    download: "Herunterladen",
    gone: (name: string) => `${name} gibt es auf dem Hub nicht mehr`,
    install:
      "Um Modelle auszuführen, braucht Parlor llama-server. Installiere es auf dem Rechner, auf dem Parlor läuft:",
    check: "Erneut prüfen",
    which: "Welchen Server benutzen Sie?",
  },
};
