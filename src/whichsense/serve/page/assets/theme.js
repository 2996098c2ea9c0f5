// Before the first paint: the light or dark that was chosen here; without a choice, the system's.
try {
  const theme = JSON.parse(localStorage.getItem('whichsense.theme'));
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* storage is closed to this page: the system decides */ }
