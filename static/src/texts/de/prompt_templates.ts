/** Texts of the prompt templates. */
import type { Texts } from "../en/en.ts";

/** German. */
export const promptTemplates: Pick<Texts, "promptTemplates"> = {
  promptTemplates: {
    title: "Prompt-Vorlagen",
    intro: "Texte, die Sie oft verwenden. Im Chat fügen Sie sie mit / und dem Namen ein.",
    empty: "Noch keine Vorlagen",
    emptyText:
      "Schreiben Sie eine für das, was Sie immer wieder fragen, etwa eine Zusammenfassung oder eine Übersetzung.",
    add: "Neue Vorlage",
    edit: "Vorlage bearbeiten",
    name: "Name",
    nameHint: "Buchstaben, Ziffern, - und _. Sie geben ihn nach dem Schrägstrich ein.",
    nameWrong: "Nur Buchstaben, Ziffern, - und _ sind möglich",
    nameTaken: "Eine andere Vorlage heißt schon so",
    text: "Text",
    textHint: "Ein Wort in doppelten eckigen Klammern, etwa [[Thema]], wird beim Einfügen erfragt.",
    insert: "Einfügen",
    remove: (name: string) => `${name} löschen`,
    removed: (name: string) => `${name} gelöscht`,
  },
};
