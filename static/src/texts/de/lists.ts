/** Texts of search, activity, selecting several items in a list, and the pages of personas. */
import type { lists as English } from "../en/lists.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const lists: typeof English = {
  drafts: {
    restored: "Ihre Eingaben sind wiederhergestellt.",
    withoutSecrets:
      "Schlüssel, Passwörter, Header und Umgebungsvariablen werden nicht aufbewahrt: Geben Sie sie neu ein.",
    clashing: "Das wurde nach Ihrer Eingabe anderswo geändert.",
    show: "Eingegebenes zeigen",
    discard: "Verwerfen",
    signOut: (n: number) =>
      count(n, {
        one: "Formular enthält Text, der nicht gespeichert ist. Beim Abmelden wird er gelöscht.",
        other: "Formulare enthalten Text, der nicht gespeichert ist. Beim Abmelden wird er gelöscht.",
      }),
  },

  search: {
    character: "Figur",
    anyCharacter: "Alle Figuren",
    role: "Wer es geschrieben hat",
    anyRole: "Alle Nachrichten",
    byYou: "Ihre Nachrichten",
    replies: "Antworten",
    time: "Zeitraum",
    anyTime: "Jederzeit",
    lastDays: (n: number) => `Letzte ${count(n, { one: "Tag", other: "Tage" })}`,
    page: (n: number) => `Seite ${n}`,
    title: "Suche",
    label: "Alle Chats durchsuchen",
    placeholder: "Wörter oder eine „exakte Wortfolge“",
    searching: "Suche läuft",
    count: (n: number) => count(n, { one: "Ergebnis", other: "Ergebnisse" }),
    atLeast: (n: number) => `Bisher ${count(n, { one: "Ergebnis", other: "Ergebnisse" })}`,
    hits: "Ergebnisse",
    inTitle: "Titel",
    failed: "Suche fehlgeschlagen",
    emptyTitle: "Chats durchsuchen",
    emptyText: "Ergebnisse erscheinen beim Tippen. Wählen Sie eines aus, um die Nachricht zu öffnen.",
    clear: "Suche leeren",
    noneTitle: "Keine Ergebnisse",
    noneText: "Kein Chat enthält alle diese Wörter. Versuchen Sie es mit weniger Wörtern.",
  },

  share: {
    title: "Empfangene Inhalte",
    intro:
      "Von einer anderen App oder Website empfangen. Der Inhalt bleibt auf diesem Gerät, bis Sie ihn in einen Chat übernehmen.",
    noneTitle: "Nichts wartet",
    noneText: "Was Sie aus anderen Apps mit Parlor teilen, wartet hier bis zu 7 Tage.",
    untitled: "Empfangener Inhalt",
    received: (time: string) => `Empfangen: ${time}`,
    files: "Dateien",
    delete: "Löschen",
    deleteOf: (title: string) => `„${title}“ löschen`,
    waiting: (n: number) =>
      `${count(n, { one: "empfangener Inhalt", other: "empfangene Inhalte" })} aus anderen Apps oder von Websites`,
    problems: {
      not_ready: "Parlor war noch nicht bereit. Teilen Sie den Inhalt noch einmal.",
      full:
        "Der letzte Inhalt wurde nicht behalten: Es warten schon 10 Inhalte oder 100 MB. Übernehmen oder löschen Sie einige und teilen Sie ihn dann noch einmal.",
      too_large:
        "Der letzte Inhalt wurde nicht behalten: Er ist größer als 100 MB. Laden Sie große Dateien in einem Chat hoch.",
      empty: "Der letzte Inhalt war leer.",
    },
  },

  activity: {
    /** By the kind of the job. */
    kinds: {
      backup: "Sicherung",
      character: "Erzeugte Figur",
      document: "Dokument",
      image: "Bild",
      import: "Import",
      model_download: "Download eines Modells",
      model_pull: "Download eines Modells",
      portrait: "Porträt",
      voice_import: "Import von Stimmen",
    },
    title: "Aktivität",
    running: "Laufend",
    ended: "Kürzlich beendet",
    failed: "Laufende Aufgaben konnten nicht geladen werden",
    noneTitle: "Nichts läuft",
    noneText:
      "Antworten, Downloads, Importe und andere lange Aufgaben erscheinen hier. Sie laufen weiter, wenn Sie die Seite verlassen.",
    reply: (clock: string) => `Antwort, ${clock}`,
    stop: "Stoppen",
    stopReply: (title: string) => `Antwort in „${title}“ stoppen`,
    cancelJob: (title: string) => `„${title}“ abbrechen`,
    of: (done: string, total: string) => `${done} von ${total}`,
    units: { steps: "Schritten", files: "Dateien", items: "Einträgen", images: "Bildern", letters: "Zeichen" },
    counted: {
      steps: (n: number) => count(n, { one: "Schritt", other: "Schritte" }),
      files: (n: number) => count(n, { one: "Datei", other: "Dateien" }),
      items: (n: number) => count(n, { one: "Eintrag", other: "Einträge" }),
      images: (n: number) => count(n, { one: "Bild", other: "Bilder" }),
      letters: (n: number) => count(n, { one: "Zeichen", other: "Zeichen" }),
    },
    states: {
      queued: "Wartet",
      running: "Läuft",
      verifying: "Wird geprüft",
      done: "Fertig",
      failed: "Fehlgeschlagen",
      cancelled: "Abgebrochen",
    },
  },

  selection: {
    label: "Auswahl",
    end: "Auswahl beenden",
    all: "Alle auswählen",
    export: "Exportieren",
    count: (n: number) => `${n} ausgewählt`,
    fileChats: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} in Ordner verschieben`,
    chatsRemoved: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} gelöscht`,
    chatsFiled: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} verschoben`,
    chatsPinned: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} angeheftet`,
    chatsUnpinned: (n: number) => `${count(n, { one: "Chat", other: "Chats" })} nicht mehr angeheftet`,
    fileCharacters: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} in Ordner verschieben`,
    charactersFiled: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} verschoben`,
    charactersRemoved: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} gelöscht`,
    favored: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} zu den Favoriten hinzugefügt`,
    unfavored: (n: number) => `${count(n, { one: "Figur", other: "Figuren" })} aus den Favoriten entfernt`,
    favorite: "Zu den Favoriten",
    unfavorite: "Aus den Favoriten entfernen",
  },

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
    descriptionHint: "Was Figuren von Ihnen sehen und wissen.",
    position: "Platz im Prompt",
    charactersOf: "Für neue Chats mit",
    positions: {
      preset: "Wo das Preset sie hat",
      note_top: "Vor der Autorennotiz",
      note_bottom: "Nach der Autorennotiz",
      at_depth: "Im Chat",
      none: "Nirgends außer bei {{persona}}",
    },
    picture: "Bild wählen",
    saved: (name: string) => `${name} gespeichert`,
    saveFailed: "Die Persona konnte nicht gespeichert werden",
    clash: "Diese Persona wurde anderswo geändert",
    clashText: (name: string, description: string) =>
      `Aktueller Stand: ${name}. ${description} Wenn Sie erneut speichern, ersetzt Ihre Version die andere.`,
  },
};
