/** What the commands behind `/` do. */
import type { slashCommands as English } from "../en/slash_commands.ts";

/** German. */
export const slashCommands: typeof English = {
  slashCommands: {
    new: "Neuer Chat",
    temporary: "Flüchtiger Chat, nirgends aufbewahrt",
    title: "Diesen Chat umbenennen",
    model: "Das Modell wählen",
    persona: "Als eine Persona sprechen, beim Namen genannt",
    image: "Ein Bild zeichnen, vom Verlauf oder nach einer Beschreibung",
    lorebook: "Das Lorebook der Figur",
    regenerate: "Die letzte Antwort neu schreiben",
    continue: "Hinter der letzten Antwort weiterschreiben",
    write: "Meine nächste Nachricht für mich schreiben",
    fork: "Von der letzten Nachricht abzweigen",
    hide: "Die letzte Nachricht vor dem Modell verbergen oder wieder zeigen",
    delete: "Die letzte Nachricht löschen",
    search: "In diesem Chat suchen",
    options: "Optionen dieses Chats",
    preview: "Was gesendet wird",
    history: "Frühere Versionen",
  },
};
