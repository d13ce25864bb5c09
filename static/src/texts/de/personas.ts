/** Texts of personas. */
import type { personas as English } from "../en/personas.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const personas: typeof English = {
  personas: {
    title: "Personas",
    intro: "Wer Sie in einem Chat sind. Die Beschreibung wird an das Modell gesendet.",
    add: "Neue Persona",
    import: "Importieren",
    imported: (n: number) => `${count(n, { one: "Persona", other: "Personas" })} importiert`,
    open: "Öffnen",
    exportCard: "Karte exportieren",
    addTitle: "Neue Persona",
    editTitle: "Persona bearbeiten",
    loadFailed: "Die Personas konnten nicht geladen werden",
    empty: "Noch keine Personas",
    emptyText: "Ohne Persona chatten Sie unter Ihrem eigenen Namen.",
    noDescription: "Keine Beschreibung",
    isDefault: "Standard",
    setDefault: "Als Standard festlegen",
    unsetDefault: "Nicht mehr als Standard",
    more: (name: string) => `Weitere Aktionen für ${name}`,
    remove: "Löschen",
    removed: (name: string) => `${name} gelöscht`,
    missing: "Diese Persona gibt es nicht",
    name: "Name",
    description: "Beschreibung",
    descriptionHint: "Was andere von Ihnen sehen und wissen.",
    picture: "Bild wählen",
    saved: (name: string) => `${name} gespeichert`,
    saveFailed: "Die Persona konnte nicht gespeichert werden",
    clash: "Diese Persona wurde anderswo geändert",
    clashText: (name: string, description: string) =>
      `Sie lautet jetzt: ${name}. ${description} Wenn Sie erneut speichern, ersetzt Ihre Version die andere.`,
    choose: "Persona wählen",
    nobody: "Keine Persona",
    you: (name: string) => `Sie: ${name}`,
    speakingAs: (name: string) => `Sie sprechen als ${name}`,
    none: "Mein eigener Name",
    manage: "Personas verwalten",
  },
};
