/** Texts of presets: the list and the editor. */
import type { presets as English } from "../en/presets.ts";
import { createCounter } from "../plural.ts";

const count = createCounter("de");

/** German. */
export const presets: typeof English = {
  presets: {
    title: "Presets",
    intro: "Sampling-Einstellungen und die Prompts, die mit einem Chat gesendet werden.",
    add: "Neues Preset",
    newName: "Neues Preset",
    import: "Datei importieren",
    importFailed: "Die Datei konnte nicht importiert werden",
    loadFailed: "Die Presets konnten nicht geladen werden",
    more: (name: string) => `Weitere Aktionen für ${name}`,
    copy: "Duplizieren",
    copyName: (name: string) => `${name} (Kopie)`,
    copyFailed: "Das Preset konnte nicht dupliziert werden",
    remove: "Löschen",
    removed: (name: string) => `${name} gelöscht`,
    export: "Für SillyTavern exportieren",
    promptCount: (n: number) => count(n, { one: "Prompt", other: "Prompts" }),
    unreadable: "Kann nicht geöffnet werden",
    builtin: "Eingebaut",
    isDefault: "Standard",
    setDefault: "Als Standard festlegen",
    missing: "Dieses Preset gibt es nicht",
    oneFailed: "Das Preset konnte nicht geladen werden",
    back: "Alle Presets",
    saveFailed: "Das Preset konnte nicht gespeichert werden",
    nameless: "Geben Sie einen Namen ein, um das Preset zu speichern",
    clash: "Dieses Preset wurde anderswo geändert",
    readOnly: "Eingebaute Presets können nicht geändert werden. Duplizieren Sie dieses, um es anzupassen.",
    label: "Abschnitte des Presets",
    parts: { prompts: "Prompts", sentences: "Hilfsprompts", samplers: "Sampling", use: "Verwendung" },
    fields: {
      name: "Name",
      models: "Modelle",
      sampler: "Sampling",
      prompts: "Prompts",
      prompt_order: "Reihenfolge der Prompts",
      extra_body: "Zusätzliche Felder",
      rest: "Andere Felder",
    },
    use: {
      intro:
        "Ein Chat verwendet sein angeheftetes Preset. Ohne eines gilt das Preset für sein Modell, dann der Standard, dann das eingebaute Preset.",
      models: "Für diese Modelle",
      modelsHint: "Eines pro Zeile. * steht für beliebige Zeichen.",
      chat: "Chat",
      noChat: "Chat auswählen",
      pinned: "An diesen Chat angeheftet",
      chatFailed: "Der Chat konnte nicht geladen werden",
    },
    order: {
      intro: "Wird von oben nach unten gesendet. Ziehen Sie eine Zeile am Griff oder verwenden Sie die Pfeile.",
      list: "Reihenfolge der Prompts",
      up: (name: string) => `${name} nach oben`,
      down: (name: string) => `${name} nach unten`,
      place: (name: string, n: number, of: number) => `${name}: Position ${n} von ${of}`,
      enabled: (name: string) => `${name} senden`,
      edit: "Bearbeiten:",
      add: "Neuer Prompt",
      newName: "Neuer Prompt",
      unplaced: "Nicht in der Reihenfolge",
      putIn: (name: string) => `${name} zur Reihenfolge hinzufügen`,
      takeOut: "Aus der Reihenfolge entfernen",
      removePrompt: "Prompt löschen",
      none: "Dieses Preset hat nur Sampling-Einstellungen. Es verwendet die eingebauten Prompts.",
      takeBuiltin: "Prompts anpassen",
      toOrder: "Alle Prompts",
      depth: (n: number) => `Tiefe ${n}`,
    },
    prompt: {
      name: "Name",
      role: "Rolle",
      content: "Text",
      contentHint: "{{char}} und {{user}} werden durch die Namen ersetzt.",
      position: "Position",
      positions: { order: "In der Prompt-Reihenfolge", depth: "Im Chat" },
      depth: "Tiefe (Nachrichten vom Ende)",
      depthOrder: "Reihenfolge bei gleicher Tiefe",
      forbid: "Karten dürfen diesen Prompt nicht ersetzen",
    },
    markers: {
      worldInfoBefore: "Lorebooks, vor der Figur",
      personaDescription: "Persona",
      charDescription: "Figur",
      charPersonality: "Persönlichkeit",
      scenario: "Szenario",
      worldInfoAfter: "Lorebooks, nach der Figur",
      dialogueExamples: "Beispieldialog",
      chatHistory: "Chatverlauf",
      main: "Hauptprompt",
      nsfw: "Zusatzprompt",
      jailbreak: "Anweisungen nach dem Verlauf",
    },
    sentences: {
      intro:
        "Kurze Texte rund um die Teile eines Prompts. {{char}} und {{user}} werden durch die Namen ersetzt. Ein leeres Feld sendet nichts.",
      reset: "Standard wiederherstellen",
      resetOne: (label: string) => `Standard wiederherstellen: ${label}`,
      fields: {
        new_chat_prompt: { label: "Vor der ersten Nachricht", hint: "In Chats mit einer Figur." },
        new_group_chat_prompt: {
          label: "Vor der ersten Nachricht einer Gruppe",
          hint: "{{group}} wird durch die Namen aller Figuren ersetzt.",
        },
        new_example_chat_prompt: {
          label: "Vor jedem Dialogbeispiel",
          hint: "In der Karte beginnt jedes Beispiel mit <START>.",
        },
        personality_format: {
          label: "Format der Persönlichkeit",
          hint: "{{personality}} wird durch die Persönlichkeit ersetzt.",
        },
        scenario_format: { label: "Format des Szenarios", hint: "{{scenario}} wird durch das Szenario ersetzt." },
        wi_format: {
          label: "Format der Lorebook-Einträge",
          hint: "{0} wird durch den Eintrag ersetzt. Leer lassen, um nur den Eintrag zu senden.",
        },
        group_nudge_prompt: {
          label: "Nächster Sprecher in einer Gruppe",
          hint: "Wird zuletzt gesendet. {{char}} ist der Sprecher.",
        },
        impersonation_prompt: {
          label: "Prompt für Ihre Rolle",
          hint: "Wird zuletzt gesendet, wenn das Modell Ihre Nachricht schreibt.",
        },
        assistant_prefill: { label: "Vorgegebener Antwortanfang", hint: "Jede Antwort beginnt mit diesem Text." },
        assistant_impersonation: {
          label: "Vorgegebener Anfang für Ihre Rolle",
          hint: "Ersetzt den Antwortanfang, wenn das Modell Ihre Nachricht schreibt.",
        },
        send_if_empty: {
          label: "Ersatz für eine leere Nachricht",
          hint: "Wird gesendet, wenn der Chat nicht mit Ihrer Nachricht endet.",
        },
        continue_nudge_prompt: {
          label: "Prompt zum Fortsetzen",
          hint:
            "Wird zuletzt gesendet, wenn eine Antwort fortgesetzt wird. {{lastChatMessage}} wird durch die Antwort ersetzt.",
        },
      },
      flags: {
        squash_system_messages: {
          label: "Systemnachrichten zusammenfassen",
          hint: "Sendet aufeinanderfolgende Systemnachrichten als eine.",
        },
        continue_prefill: {
          label: "Antworten direkt fortsetzen",
          hint:
            "Das Modell schreibt nach dem letzten Wort der Antwort weiter. Unterstützt sein Server das nicht, wird stattdessen der Prompt zum Fortsetzen gesendet.",
        },
      },
      joint: "Trennzeichen zwischen Antwort und Fortsetzung",
      joints: { none: "Keines", space: "Leerzeichen", line: "Neue Zeile", paragraph: "Leere Zeile" },
    },
    samplers: {
      bias: {
        title: "Logit-Bias",
        hint:
          "Texte, die in Antworten häufiger (bis 100) oder seltener (bis -100) vorkommen. llama.cpp nimmt Texte an, andere Server nur Token-IDs wie [1, 2].",
        text: (n: number) => `Text ${n}`,
        value: (n: number) => `Bias von Text ${n}`,
        remove: (n: number) => `Text ${n} entfernen`,
        add: "Text hinzufügen",
      },
      extraBodyHint: "Ein JSON-Objekt, das jeder Chat-Anfrage hinzugefügt wird. Einstellungen des Chats haben Vorrang.",
      intro:
        "Lassen Sie ein Feld leer, um den Standard des Servers zu verwenden. Einstellungen des Chats haben Vorrang.",
      other: "Weitere",
    },
  },
};
