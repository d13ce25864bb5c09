/** Texts of the slash commands. */
import type { slashCommands as English } from "../en/slash_commands.ts";

/** German. */
export const slashCommands: typeof English = {
  slashCommands: {
    new: "Neuer Chat",
    temporary: "Temporärer Chat (wird nicht gespeichert)",
    title: "Diesen Chat umbenennen",
    model: "Modell wählen",
    persona: "Zu einer Persona wechseln",
    image: "Bild der Szene oder nach einem Prompt generieren",
    insert: "Prompt oder Ressource eines Werkzeugservers einfügen",
    lorebook: "Lorebook der Figur öffnen",
    regenerate: "Letzte Antwort neu generieren",
    continue: "Letzte Antwort fortsetzen",
    write: "Meine nächste Nachricht für mich schreiben",
    fork: "Von der letzten Nachricht abzweigen",
    hide: "Letzte Nachricht für das Modell aus- oder wieder einblenden",
    delete: "Letzte Nachricht löschen",
    search: "In diesem Chat suchen",
    recall: "In anderen Chats nachschlagen und zitieren",
    options: "Chat-Optionen",
    preview: "Prompt-Vorschau",
    history: "Frühere Versionen",
  },
};
