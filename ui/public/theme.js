// Runs before the first paint, so that a stored theme never flashes the other one.
(function () {
  try {
    var t = localStorage.getItem('risso.theme');
    if (t === 'dark' || t === 'light') document.documentElement.dataset.theme = t;
  } catch (e) {
    // Storage is off: the system's preference stands.
  }
})();
